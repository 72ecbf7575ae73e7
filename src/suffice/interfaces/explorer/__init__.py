"""The explorer: a page on this machine that shows models, answers clicks, and learns.

May use formats, recipes, the report and all below them; starlette and uvicorn (the extra `explore`) are imported here only, and
only when it is started. Start reading in `serving`; `app` lists the requests, `docs/explorer_http.md` says what they mean, and
each is answered by a function that takes a `Call`, in `answers`. No number is computed here that the library would not compute
for anybody.
"""
