// Package capture sees what passes a link of a lab: each frame by an AF_PACKET socket
// (packet(7)) beside it, what the frame says about group membership, and whole runs as
// pcap files.
//
//	switch ── port ──── host's eth0
//	            │
//	         Socket ── Next, Frames: a frame, and which way it went
//	            ├── Recorder: all frames from Record to Stop, WritePcap
//	            └── MembershipMessages: IGMP and MLD queries, reports and leaves in it
//
// AF_PACKET sees a frame after XDP: frames that roced takes on this very link are not
// seen. Capture on the link's other end.
//
// A Socket belongs to one goroutine; a Recorder has one of its own.
package capture
