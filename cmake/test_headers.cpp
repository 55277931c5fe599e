// The target that has it makes the precompiled headers of the tests, and does nothing else.
int main() {}
