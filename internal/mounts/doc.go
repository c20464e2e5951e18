// Package mounts keeps the mounts of a new mount namespace apart from those of the namespace that it was copied from
// (mount_namespaces(7)).
package mounts
