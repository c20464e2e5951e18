// Package journal notes what a process changes on the host, so that the next one can undo
// what a killed process left.
//
//	DIR/KIND-COOKIE-INODE-INDEX-RANDOM       one file for each process, kind and interface
//	239.1.1.1·············\n                  lines of 64 bytes; a free one is blank
//
// The namespace is told by its cookie (socket(7), SO_NETNS_COOKIE): unlike inode numbers,
// neither it nor the interface's index is given out twice before the machine restarts. The inode
// number says whether the namespace still exists, so that records of those that have gone can go
// too. A file is locked while its process lives (flock(2)), and there is none
// while there is nothing to list. A line is written in one piece, before the change
// is made, and is not forced to disk: it is to outlive the process, not the kernel.
//
// A Journal has no lock: its owner's covers it. Several processes may use one directory.
package journal
