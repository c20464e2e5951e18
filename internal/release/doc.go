// SPDX-License-Identifier: Apache-2.0

// Package release reports the release of roced in a program.
package release
