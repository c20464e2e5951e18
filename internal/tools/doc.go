// SPDX-License-Identifier: Apache-2.0

// Package tools lists the programs and files that builds and tests need in addition to Go, with their Debian
// packages. Users of roced need none of them.
//
//	purpose.go   the tools per purpose: tests, make generate, make package, …
//	tools.go     the package of each tool; Missing, which checks a list at once
package tools
