// Package dump is roced dump: the packets of one of the service's devices, which XDP steers away from
// tcpdump, and those that the device sends, as pcapng. The service writes it (verbs/server's capture.go);
// this passes it on.
package dump
