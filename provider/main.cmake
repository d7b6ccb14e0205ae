include(${CMAKE_SOURCE_DIR}/cmake/sless_plugin_program.cmake)
sless_plugin_program(sless SOURCES main.cc ROOMS plugin provider)
