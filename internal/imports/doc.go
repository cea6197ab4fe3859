// Package imports holds the table of which package of Rollway may import
// which, with the reason of each edge. It is a test and nothing else.
package imports
