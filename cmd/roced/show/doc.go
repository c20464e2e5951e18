// Package show is roced show: what a device has. Only the GID table as yet (gid.go), which
// needs no device to be open.
package show
