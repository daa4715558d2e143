"""An exact Atari 2600 for everybody's agents.

From below:

    machine   the console and its compiler: a cartridge becomes native code; facts about cartridges
    steps     compiled steps of games: begin an episode, play a step, make the observation
    games     N games as rows of one record, their threads, their states
    envs      environments for other programs, with the rules of ale-py's; what a game may bring
    lockstep  any cartridge next to ALE

Of the rest of the package this needs errors, schemas, seeds, and facts about the computer. It knows
a game only as facts (`atari.machine.cartridges`), and as what whoever opens it brings along
(`atari.envs.plug`).
"""
