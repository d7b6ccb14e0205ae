#pragma once

// What the engine and one worker send each other: frames both ways, and the worker's output.

#include <poll.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"
#include "server/runner/frames.h"
#include "server/runner/log_writer.h"
#include "server/runner/worker_process.h"

namespace sless::runner {

/// A worker process and its channels. Thread safety: as WorkerProcess.
class WorkerLink {
 public:
  struct Events {
    std::function<void(const Frame&)> on_frame;
    /// A line that was written to a pipe; `stream` is stdout or stderr.
    std::function<void(std::string_view stream, std::string_view line)> on_line;
  };
  /// Error: that of WorkerProcess::Start.
  static base::Result<std::unique_ptr<WorkerLink>> Start(const WorkerOptions& options,
                                                         Events events);

  /// Adds what to wait for: the worker's end, room for what is to be sent, and, while `reading`,
  /// what it sends.
  void AddTo(std::vector<pollfd>& fds, bool reading) const;
  /// `head` is one JSON object. What does not fit now is sent by later calls of Write(). Error:
  /// kTooLarge, a frame above kMaxFrame: nothing of it is sent.
  base::Status Send(std::string_view head, std::string_view payload);
  void Write();
  /// Some of what is there, frames first: little per turn, so that a worker that floods us does not
  /// stop the clocks of the calls.
  void Read();
  /// Of the pipes alone, most of what is there.
  void ReadPipes();
  /// What the pipes hold of a line that has not ended is a line.
  void EndLines();
  /// All that an ended worker has left.
  void ReadRest();

  /// The stream of frames is of no use: `why` continues "the function's process …". The first word
  /// counts.
  void Break(std::string why);
  /// "" while the stream is sound.
  const std::string& broken() const { return broken_; }

  void Kill() { process_->Kill(); }
  std::optional<base::ExitStatus> Reap() { return process_->Reap(); }

 private:
  struct Pipe {
    std::string_view stream;
    int fd;
    bool open = true;
    LineSplitter lines = {};
  };
  WorkerLink(std::unique_ptr<WorkerProcess> process, Events events);
  void ReadFrames(int turns);
  void ReadPipe(Pipe& pipe, size_t most);

  std::unique_ptr<WorkerProcess> process_;
  Events events_;
  FrameReader reader_;
  std::deque<std::string> out_;  // frames
  size_t sent_ = 0;              // of the first one
  Pipe pipes_[2];
  bool open_ = true;
  std::string broken_;
};

}  // namespace sless::runner
