// SPDX-License-Identifier: Apache-2.0

// Package man implements roced man, which shows a manual page (internal/manual) with man(1), or writes all
// pages.
package man
