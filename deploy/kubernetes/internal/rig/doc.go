// SPDX-License-Identifier: Apache-2.0

// Package rig has, for tests, a service of roced that they start and kill, and the programs that they run.
package rig
