"""An emulator of the Atari 2600 that compiles cartridges to native code.

The console is from 1977. Its processor, a 6507 at 1.19 MHz, runs the program in the cartridge. A
chip called TIA draws the picture line by line, while the program tells it what to draw. A third
chip, the RIOT, has 128 bytes of memory, a timer and the switches. There is no operating system and
no memory for pictures: everything happens in step with the television's beam.

Read in this order:

    record       the record: the console's state, and the picture
    opcodes      the processor's instructions
    instructions the effect of each instruction, as lines of typed Python
    banks        the cartridge's side of the bus: ROM in banks
    disassembly  which bytes of a cartridge are instructions
    registers    the TIA's registers and objects, by name
    tia          the TIA's response to the program's writes and reads
    drawing      the drawing of lines
    objects      the pixels of each object in a line
    collisions   which objects collide, and how most of the search is left out
    console      the bus, the memory and timer, the paddles, a frame
    past         the parts of older frames that a picture may contain
    playing      the inputs of each action; frames and their results
    resetting    the frames of a start, after a reset
    interpreter  running instructions one by one, from any address
    translation  all instructions that were found, as one function; tia_writes
    exploring    finding the entries of code by playing, and keeping them
    typed        the language of all this, which also runs as plain Python
    lowering     from typed Python to LLVM IR: functions and statements
    ir, program  the same for expressions; functions and tables that are compiled together
    native       from IR to machine code; cache
    build        the programs: the console for all cartridges, and one cartridge
    cartridge    the facts that the machine must know; cartridges has them by name
    scoring      points, lives and end, compiled from these facts; digits has its helpers
    roms         a cartridge's ROM, from ale-py
    compiled     a compiled cartridge
    starting     a game's start: the machine after a reset
    shrinking    reducing pictures to a smaller size

It knows the hardware and facts about cartridges, and imports only `pixelpong.errors` from the
package. ``docs/emulator.md`` describes the pitfalls and how exactness is tested.
"""
