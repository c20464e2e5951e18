// Package unit words advice on the service's process: systemctl where systemd manages it, else the process itself.
//
// It reads the file system at each call, and is meant for errors. It has no state.
package unit
