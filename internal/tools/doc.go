// Package tools lists the programs and files that builds and tests need beside Go, and the Debian package of each.
// Users of roced need none of them.
//
//	purpose.go   what each purpose needs: the optional tools of tests, make generate, make package, …
//	tools.go     the package of each tool; Missing, which checks a list at once
package tools
