"""A small Atari 2600 that turns a cartridge into native code.

The console is from 1977. Its processor, a 6507 at 1.19 MHz, runs the program in the cartridge; a
chip called TIA draws the picture, line by line, while the program tells it what to draw; a third,
the RIOT, has 128 bytes of memory, a timer and the switches. There is no operating system and no
memory for pictures: everything happens in step with the television's beam.

Read in this order:

    machine      the record: everything the console remembers, and the picture
    opcodes      the processor's instructions
    disassembly  which bytes of a cartridge are instructions
    registers    the TIA's registers and objects, by name
    tia          what the TIA does when the program writes to it or reads it
    drawing      what each object looks like, and how lines are drawn
    console      the bus, memory and timer, paddles, the start and end of a frame
    translation  each instruction as a line or two of typed Python; the frame as one function
    typed        that language, which also runs as plain Python
    lowering     from typed Python to LLVM IR: functions and statements
    ir           the same for expressions; a program of functions and tables
    native       from IR to machine code, and the cache

It knows the hardware and no game; `pixelpong.env.cartridge` has the facts about Pong. The pitfalls,
and how exactness is tested, are described in ``docs/emulator.md``.
"""
