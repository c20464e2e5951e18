// SPDX-License-Identifier: Apache-2.0

// Package cardtest provides queue pairs on an in-memory network, for tests without privileges.
package cardtest
