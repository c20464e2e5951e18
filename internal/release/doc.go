// Package release reports the release of roced in a program.
package release
