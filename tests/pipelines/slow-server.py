#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Serves the current folder by HTTP at a free port of this machine, and prints the port: slow-server.py [stalls|swings]
# stalls: the second half of a file never comes. swings: media segments come slowly and fast by turns, so that players
# change to smaller and larger pictures.
import http.server
import sys
import time

FAST, SLOW = 2e7, 9e4  # bytes a second
AT_ONCE = 4096  # bytes
mode = sys.argv[1] if len(sys.argv) > 1 else ""
segments = 0


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def copyfile(self, source, outputfile):
        try:
            self.send(source.read(), outputfile)
        except OSError:  # the player does not want the rest
            pass

    def send(self, data, outputfile):
        global segments
        if mode == "stalls":
            outputfile.write(data[: len(data) // 2])
            time.sleep(600)
        elif mode == "swings" and self.path.endswith(".ts"):
            segments += 1
            rate = SLOW if segments // 4 % 2 else FAST
            for at in range(0, len(data), AT_ONCE):
                outputfile.write(data[at : at + AT_ONCE])
                time.sleep(AT_ONCE / rate)
        else:
            outputfile.write(data)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
