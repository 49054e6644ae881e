"""K: coding sheets, which `corpus audit compare` reads."""

from orchtrace_corpus.base.findings import Entry

ENTRIES = {
    "K101": Entry(
        "A sheet is a CSV file with a heading that names its columns, `key` among them, and as many cells in each row. "
        "Without that, no cell can be told from another.",
        "name,topology\np-0,debate",
        "key,topology\np-0,debate",
    ),
    "K102": Entry(
        "A column that is no field is left out of the comparison, and its cells with it. `key`, `title`, `links` and "
        "`notes` are known beside the fields.",
        "key,topolgy\np-0,debate",
        "key,topology\np-0,debate",
    ),
    "K103": Entry(
        "A row is compared by its key, so the key must be that of a record.",
        "key,topology\np0,debate",
        "key,topology\np-0,debate",
    ),
    "K104": Entry(
        "Of two rows for one record, nobody knows which the reader meant.",
        "key,topology\np-0,debate\np-0,swarm",
        "key,topology\np-0,debate",
    ),
    "K105": Entry(
        "A word outside the vocabulary is no reading, and counts as not coded. `corpus audit compare --merge` makes "
        "names for terms taken together.",
        "key,topology\np-0,heirarchical",
        "key,topology\np-0,hierarchical",
    ),
    "K106": Entry(
        "An empty cell counts as not coded, and drops out of the comparison. What does not arise is coded as `none`, "
        "what does not apply as `NA`.",
        "key,topology,stop\np-0,debate,",
        "key,topology,stop\np-0,debate,none",
    ),
    "K107": Entry(
        "A record that only one reader coded cannot be compared. The sheets may well have been drawn differently; "
        "if not, rows were lost.",
        "key,topology\np-0,debate\n\nkey,topology\np-0,debate\np-1,swarm",
        "key,topology\np-0,debate\np-1,swarm\n\nkey,topology\np-0,debate\np-1,swarm",
    ),
}
