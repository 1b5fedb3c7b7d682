"""What a person sees. Nothing here imports rich but `terminal`, and that only while it paints.

`rows` is the tab-separated listing of a pipe, `layout` the lines every screen is made of, `terminal` the way out;
`memory`, `review`, `changes` and `file` hold one function per result.
"""
