// Package version implements roced version.
package version
