"""An Atari 2600 that turns cartridges into native code.

The console is from 1977. Its processor, a 6507 at 1.19 MHz, runs the program in the cartridge; a
chip called TIA draws the picture, line by line, while the program tells it what to draw; a third,
the RIOT, has 128 bytes of memory, a timer and the switches. There is no operating system and no
memory for pictures: everything happens in step with the television's beam.

Read in this order:

    machine      the record: everything the console remembers, and the picture
    opcodes      the processor's instructions
    instructions what each of them does, as lines of typed Python
    banks        the cartridge's side of the bus: ROM in banks
    disassembly  which bytes of a cartridge are instructions
    registers    the TIA's registers and objects, by name
    tia          what the TIA does when the program writes to it or reads it
    drawing      what each object looks like, and how lines are drawn
    console      the bus, memory and timer, paddles, a frame
    past         what a picture shows of older frames
    playing      what an action presses; frames and their results
    interpreter  instructions one after the other, from anywhere
    translation  all instructions that were found, as one function; tia_writes
    exploring    where code begins: found by playing, and kept
    typed        the language of all this, which also runs as plain Python
    lowering     from typed Python to LLVM IR: functions and statements
    ir, program  the same for expressions; functions and tables that are compiled together
    native       from IR to machine code; cache
    build        the programs: the console for all cartridges, and a cartridge
    cartridge    the facts that the machine must know; cartridges has them by name
    roms         a cartridge's ROM, from ale-py
    game         a compiled cartridge
    starting     how a game starts
    shrinking    making pictures smaller

It knows the hardware and no game, and imports nothing of the package but `pixelpong.errors`. What
is Pong's alone is in `pixelpong.env`. The pitfalls, and how exactness is tested, are described in
``docs/emulator.md``.
"""
