"""Files to declarations: `extends` first, documents expanded, classified, merged, and judged for their form."""
