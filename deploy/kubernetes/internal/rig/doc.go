// SPDX-License-Identifier: Apache-2.0

// Package rig builds programs for tests, and starts and kills a service of roced.
package rig
