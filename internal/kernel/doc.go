// Package kernel reports the release of the running kernel. To errors of a kernel that is too old, or lacks a module, it adds
// the cause and the remedy.
package kernel
