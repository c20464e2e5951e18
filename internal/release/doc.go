// Package release says which release of roced a program has: one place, for all that show it.
package release
