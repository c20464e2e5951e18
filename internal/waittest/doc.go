// SPDX-License-Identifier: Apache-2.0

// Package waittest provides waits for tests: for a condition, with a context, and for rare events. A time
// limit ends a test that hangs; no test depends on timing.
package waittest
