// Package mounts isolates a new mount namespace from the namespace that it was copied from
// (mount_namespaces(7)).
package mounts
