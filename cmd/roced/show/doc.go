// Package show is roced show. As yet it shows only the GID table (gid.go), and opens no card for that.
package show
