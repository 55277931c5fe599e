#pragma once

// What the command says, where: progress on a terminal only, messages on standard error, answers on
// standard output.

#include <stop_token>
#include <string>
#include <string_view>

namespace tessera::tools {

// One line that is written over, on standard error where it is a terminal; nothing in a pipe.
void show_progress(std::string_view what, double share);
void clear_progress();

void say(const std::string& message);  // standard error, a line
void answer(const std::string& text);  // standard output, as it is

// Width of the terminal, 120 where there is none.
int terminal_width();

// Installs the handler of SIGINT and SIGTERM: the first asks to stop, and half-written files go;
// the second ends at once.
void install_cancellation();
std::stop_token cancellation();

}  // namespace tessera::tools
