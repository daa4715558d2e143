"""A small Atari 2600 that turns a cartridge into native code.

The console is from 1977. Its processor, a 6507 at 1.19 MHz, runs the program in the cartridge; a
chip called TIA draws the picture, line by line, while the program tells it what to draw; a third,
the RIOT, has 128 bytes of memory, a timer and the switches. There is no operating system and no
memory for pictures: everything happens in step with the television's beam.

To read in this order:

    machine      the record: all that the console remembers, and the picture
    opcodes      the processor's instructions
    disassembly  which bytes of a cartridge are instructions
    registers    the TIA's registers and objects, by name
    tia          what the TIA does when it is written to, or read
    drawing      what each object looks like, and how lines are drawn
    console      the bus, memory and timer, paddles, the begin and the end of a frame
    translation  each instruction as a line or two of typed Python; the frame as one function
    typed        that language, which runs in Python as it stands
    lowering     from it to LLVM IR, with its expressions in a file of their own
    ir           types, values and programs of LLVM IR
    native       from IR to machine code, and the cache
    check        whether a record from a file can be a state

It knows the hardware and no game; what it is told of Pong stands in `pixelpong.env.cartridge`. The
traps, and how exactness is tested, are in ``docs/emulator.md``.
"""
