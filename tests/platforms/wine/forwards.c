/* python3.dll: nothing of its own; the linker's list forwards each name to python311.dll. */
int DllMain(void *module, unsigned reason, void *reserved) { return 1; }
