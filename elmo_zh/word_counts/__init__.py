"""How often which word stands in text of any size: counted shard by shard, exactly, in memory that does not grow."""
