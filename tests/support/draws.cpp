// Numbers from 0 to n - 1, as a C++ library draws them: n, then four for each of six seeds.
//
//     clang++ -stdlib=libc++ draws.cpp -o draws && ./draws > draws_of_macos.txt
//
#include <cstdio>
#include <random>
int main() {
  for (int n : {1, 2, 3, 4, 5, 8, 17, 30, 31, 32, 33, 64, 100, 1000}) {
    std::printf("%d", n);
    for (unsigned seed : {0u, 1u, 2u, 3u, 7u, 4294967295u}) {
      std::mt19937 rng(seed);
      std::uniform_int_distribution<int> draw(0, n - 1);
      for (int k = 0; k < 4; k++) std::printf(" %d", draw(rng));
    }
    std::printf("\n");
  }
}
