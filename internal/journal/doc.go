// SPDX-License-Identifier: Apache-2.0

// Package journal records a process's changes of the host, so that the next process can undo those of a
// killed one.
//
//	DIR/KIND-COOKIE-INODE-INDEX-RANDOM       one file for each process, kind and interface
//	239.1.1.1·············\n                  lines of 64 bytes; a free line is blank
//
// COOKIE identifies the network namespace (socket(7), SO_NETNS_COOKIE), INDEX the interface.
// Neither is reused before the machine restarts. The namespace's inode number can be reused; it
// only shows whether the namespace still exists, so that records of removed namespaces can be
// removed too.
//
// A file is locked while its process runs (flock(2)). A process without changes has no file. A line is
// written immediately before its change is made. It is not synced to disk, because it needs to outlive only
// the process, not the kernel.
//
// A Journal has no lock: its owner's lock covers it. Several processes may use one directory.
package journal
