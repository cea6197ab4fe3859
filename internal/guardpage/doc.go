// Package guardpage gives tests memory with walls, for code that might read or
// write beyond what it was given.
package guardpage
