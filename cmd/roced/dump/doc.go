// SPDX-License-Identifier: Apache-2.0

// Package dump implements roced dump, which writes the packets of a device of the service as pcapng. The
// service creates the capture (verbs/server's capture.go); this package copies it.
package dump
