"""What a page holds as data."""

import json
import re


def data_of(html):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1]
    )


def chart(data, id):
    return next(chart for chart in data["charts"] if chart["id"] == id)


def table(data, id):
    return next(table for table in data["tables"] if table["id"] == id)
