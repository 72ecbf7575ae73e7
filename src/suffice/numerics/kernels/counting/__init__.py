"""Tables and moments of rows: by bits, row by row; scores of tables; incomplete rows reduced to what EM needs. Start with
`count`."""
