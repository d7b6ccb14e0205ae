# A plugin program: terraform-provider-<name>, in bin/.
#
#   sless_plugin_program(<name> SOURCES <file>... ROOMS <room>...)
#
# Terraform starts a provider several times per command, so start-up time counts: but for sanitizer builds the program is linked
# with static archives (docs/decisions/0010). The libraries of the rooms are found by following the rooms' links; one that has no known
# archive stops the configuration, so that nothing dynamic slips in.

# Debian has no libfmt.a: fmt is compiled here, once, from its headers.
if(NOT TARGET sless_static_fmt)
  add_library(sless_static_fmt STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/static_fmt.cc)
endif()

# Sets `archives_out` to the static rooms behind the targets, `libraries_out` to the names of system libraries.
function(sless_collect_links archives_out libraries_out)
  set(queue ${ARGN})
  set(seen "")
  set(archives "")
  set(libraries "")
  while(queue)
    list(POP_FRONT queue item)
    if(item IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${item})
    if(item STREQUAL "sless_options" OR item STREQUAL "Threads::Threads" OR item STREQUAL "nlohmann_json::nlohmann_json"
       OR item STREQUAL "tl::expected" OR item MATCHES "^Boost::(headers|boost)$")
      continue()  # headers and flags only
    elseif(item MATCHES "^sless_" AND TARGET ${item})
      get_target_property(type ${item} TYPE)
      if(type STREQUAL "STATIC_LIBRARY")
        list(APPEND archives ${item})
      endif()
      get_target_property(links ${item} INTERFACE_LINK_LIBRARIES)
      if(links)
        list(APPEND queue ${links})
      endif()
    elseif(item STREQUAL "OpenSSL::SSL")
      list(APPEND libraries ssl crypto)
    elseif(item STREQUAL "OpenSSL::Crypto")
      list(APPEND libraries crypto)
    elseif(item STREQUAL "ZLIB::ZLIB")
      list(APPEND libraries z)
    elseif(item MATCHES "^(absl_synchronization|grpc\\+\\+|grpc|gpr|protobuf-lite|ssl|crypto|z)$")
      list(APPEND libraries ${item})
    else()
      message(FATAL_ERROR "sless_plugin_program: no static archive is known for ${item}, which a room links")
    endif()
  endwhile()
  set(${archives_out} ${archives} PARENT_SCOPE)
  set(${libraries_out} ${libraries} PARENT_SCOPE)
endfunction()

function(sless_plugin_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;ROOMS" ${ARGN})
  set(target terraform-provider-${name})
  add_executable(${target} ${PROGRAM_SOURCES})
  target_compile_options(${target} PRIVATE ${SLESS_WARNINGS})
  set(rooms "")
  foreach(room IN LISTS PROGRAM_ROOMS)
    list(APPEND rooms sless_${room})
  endforeach()
  if(SLESS_SANITIZE OR SLESS_TSAN)
    target_link_libraries(${target} PRIVATE ${rooms})
    return()
  endif()

  sless_collect_links(archives libraries ${rooms})
  list(REMOVE_DUPLICATES libraries)
  set(files "")
  foreach(archive IN LISTS archives)
    list(APPEND files $<TARGET_FILE:${archive}>)
  endforeach()
  # What gRPC itself needs beside the libraries that the rooms name.
  file(GLOB absl /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/libabsl_*.a)
  set(grpc_needs -laddress_sorting -lre2 -lupb -lcares -lz)
  set(names "")
  foreach(library IN LISTS libraries)
    list(APPEND names -l${library})
  endforeach()
  add_dependencies(${target} ${archives} sless_static_fmt)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE SLESS_VERSION="${PROJECT_VERSION}")
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections $<$<CONFIG:Release>:-s>)
  if(MOLD)
    # As other linkers do without being told: code that runs at the start lies together, and what lies between is not brought
    # into memory (4 MB at the handshake line).
    target_link_options(${target} PRIVATE -fuse-ld=mold -Wl,-z,keep-text-section-prefix)
  endif()
  target_link_libraries(${target} PRIVATE -Wl,-Bstatic -Wl,--start-group ${files} $<TARGET_FILE:sless_static_fmt> ${names}
                        ${grpc_needs} ${absl} -Wl,--end-group -Wl,-Bdynamic -lpthread -ldl)
  # A changed room links the program anew.
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${files}")
endfunction()
