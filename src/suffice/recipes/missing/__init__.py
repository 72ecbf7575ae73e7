"""Reports on missing cells: how many, in which patterns, and whether they have to do with what is seen. Start with
`missingness`."""
