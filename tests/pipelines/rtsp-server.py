#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Serves cameras by RTSP at a free port of this machine, and prints the port. Exits with 77 without GstRtspServer.
import sys

try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer
except (ImportError, ValueError, AttributeError):
    sys.exit(77)

Gst.init(None)
LATE = "queue max-size-buffers=0 max-size-bytes=0 max-size-time=0 min-threshold-time=2000000000"
VIDEO = (
    "videotestsrc is-live=true ! video/x-raw,width=160,height=120,framerate=25/1 ! {} ! x264enc tune=zerolatency "
    "speed-preset=ultrafast key-int-max=75 ! rtph264pay name=pay{} pt=96 "
)
SOUND = "audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! {} ! mulawenc ! rtppcmupay "
CAMERAS = {
    "/plain": VIDEO.format("queue", 0) + SOUND.format("queue") + "name=pay1 pt=0",
    "/sound-first": SOUND.format("queue") + "name=pay0 pt=0 " + VIDEO.format(LATE, 1),
    "/video-first": VIDEO.format("queue", 0) + SOUND.format(LATE) + "name=pay1 pt=0",
    # Its sound is announced, but does not come.
    "/mute": VIDEO.format("queue", 0) + SOUND.format("queue") + "pt=0 ! identity name=pay1 drop-probability=1",
}
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service("0")
for path, line in CAMERAS.items():
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch("( " + line + " )")
    factory.set_shared(path != "/sound-first" and path != "/video-first")
    server.get_mount_points().add_factory(path, factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
