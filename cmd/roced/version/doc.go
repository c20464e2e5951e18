// SPDX-License-Identifier: Apache-2.0

// Package version implements roced version.
package version
