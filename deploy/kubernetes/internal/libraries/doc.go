// SPDX-License-Identifier: Apache-2.0

// Package libraries puts roced's C libraries where containers of the node get them from.
package libraries
