// Package version is roced version.
package version
