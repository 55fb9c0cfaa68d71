// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How a program ends early, without a file that is not complete.
#pragma once

#include <string>
#include <vector>

namespace media {

// The signals that end the program early. nohup has SIGHUP ignored.
std::vector<int> interruptions();
// Ends the program at once, with exit_code(Interrupted) and its last words. May be a signal handler.
void leave(int);
// Changes the last words. They must outlive their use.
void say_at_end(const char *words);
// Ends the program so after some milliseconds; 0: not any more.
void leave_in(int milliseconds);
// GStreamer only warns if it cannot start a thread, and waits for it for ever. From now on this ends the program.
void end_without_threads();
// The name of the file whose part is written at this place; empty for other places.
std::string name_of_part(const std::string &place);

}  // namespace media
