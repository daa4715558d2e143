def find_sight(facts):
    raise NotImplementedError
