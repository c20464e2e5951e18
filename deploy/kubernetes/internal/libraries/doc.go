// SPDX-License-Identifier: Apache-2.0

// Package libraries installs roced's C libraries in a folder of the node, from which containers mount them.
package libraries
