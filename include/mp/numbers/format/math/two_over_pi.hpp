// SPDX-License-Identifier: MIT
/// \file
/// The bits of 2/pi, as many as the largest exponent asks for: what the reduction of angles in radians takes.
#pragma once

#include <mp/config.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

// The bits of 2/pi after 64 zeros, in a table where the host finds it without building it up first.
#define MP_BITS_OF_TWO_OVER_PI                                                                              \
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,     \
        0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, \
        0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, \
        0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, \
        0xf0cfbc209af4361d, 0xa9e391615ee61b08, 0x6599855f14a06840, 0x8dffd8804d732731, 0x06061556ca73a8c9, \
        0x60e27bc08c6b47c4, 0x19c367cddce8092a, 0x8359c4768b961ca6, 0xddaf44d15719053e, 0xa5ff07053f7e33e8, \
        0x32c2de4f98327dbb, 0xc33d26ef6b1e5ef8, 0x9f3a1f35caf27f1d, 0x87f121907c7c246a, 0xfa6ed5772d30433b, \
        0x15c614b59d19c3c2, 0xc4ad414d2c5d000c, 0x467d862d71e39ac6, 0x9b0062337cd2b497, 0xa7b4d55537f63ed7, \
        0x1810a3fc764d2a9d
inline constexpr std::uint64_t bits_of_two_over_pi[] = {MP_BITS_OF_TWO_OVER_PI};

/// 64 bits of 2/pi from the one of weight 2^(-64 index) on; there are none before index 1.
MP_HOST_DEVICE constexpr std::uint64_t two_over_pi(int index) {
#if MP_DEVICE_CODE
    constexpr std::uint64_t words[] = {MP_BITS_OF_TWO_OVER_PI};
    return words[index];
#else
    return bits_of_two_over_pi[index];
#endif
}
#undef MP_BITS_OF_TWO_OVER_PI

// The bits of 2/pi from index 41 on.
#define MP_MORE_BITS_OF_TWO_OVER_PI                                                                         \
    0x64abd770f87c6357, 0xb07ae715175649c0, 0xd9d63b3884a7cb23, 0x24778ad623545ab9, 0x1f001b0af1dfce19,     \
        0xff319f6a1e666157, 0x9947fbacd87f7eb7, 0x652289e83260bfe6, 0xcdc4ef09366cd43f, 0x5dd7de16de3b5892, \
        0x9bde2822d2e88628, 0x4d58e232cac616e3, 0x08cb7de050c017a7, 0x1df35be01834132e, 0x6212830148835b8e, \
        0xf57fb0adf2e91e43, 0x4a48d36710d8ddaa, 0x425faece616aa428, 0x0ab499d3f2a6067f, 0x775c83c2a3883c61, \
        0x78738a5a8cafbdd7, 0x6f63a62dcbbff4ef, 0x818d67c12645ca55, 0x36d9cad2a8288d61, 0xc277c9121426049b, \
        0x4612c459c444c5c8, 0x91b24df31700ad43, 0xd4e5492910d5fdfc, 0xbe00cc941eeece70, 0xf53e1380f1ecc3e7, \
        0xb328f8c79405933e, 0x71c1b3092ef3450b, 0x9c12887b20ab9fb5, 0x2ec292472f327b6d, 0x550c90a7721fe76b, \
        0x96cb314a1679e279, 0x4189dff49794e884, 0xe6e29731996bed88, 0x365f5f0efdbbb49a, 0x486ca46742727132, \
        0x5d8db8159f09e5bc, 0x25318d3974f71c05, 0x30010c0d68084b58, 0xee2c90aa4702e774, 0x24d6bda67df77248, \
        0x6eef169fa6948ef6, 0x91b45153d1f20acf, 0x3398207e4bf56863, 0xb25f3edd035d407f, 0x8985295255c06437, \
        0x10d86d324832754c, 0x5bd4714e6e5445c1, 0x090b69f52ad56614, 0x9d072750045ddb3b, 0xb4c576ea17f9877d, \
        0x6b49ba271d296996, 0xacccc65414ad6ae2, 0x9089d98850722cbe, 0xa4049407777030f3, 0x27fc00a871ea49c2, \
        0x663de06483dd9797, 0x3fa3fd94438c860d, 0xde41319d39928c70, 0xdde7b7173bdf082b, 0x3715a0805c93805a, \
        0x921110d8e80faf80, 0x6c4bffdb0f903876, 0x185915a562bbcb61, 0xb989c7bd401004f2, 0xd2277549f6b6ebbb, \
        0x22dbaa140a2f2689, 0x768364333b091a94, 0x0eaa3a51c2a31dae, 0xedaf12265c4dc26d, 0x9c7a2d9756c0833f, \
        0x03f6f0098c402b99, 0x316d07b43915200c, 0x5bc3d8c492f54bad, 0xc6a5ca4ecd37a736, 0xa9e69492ab6842dd, \
        0xde6319ef8c76528b, 0x6837dbfcaba1ae31, 0x15dfa1ae00dafb0c, 0x664d64b705ed3065, 0x29bf56573aff47b9, \
        0xf96af3be75df9328, 0x3080abf68c6615cb, 0x040622fa1de4d9a4, 0xb33d8f1b5709cd36, 0xe9424ea4be13b523, \
        0x331aaaf0a8654fa5, 0xc1d20f3f0bcd785b, 0x76f923048b7b7217, 0x8953a6c6e26e6f00, 0xebef584a9bb7dac4, \
        0xba66aacfcf761d02, 0xd12df1b1c1998c77, 0xadc3da4886a05df7, 0xf480c62ff0ac9aec, 0xddbc5c3f6dded01f, \
        0xc790b6db2a3a25a3, 0x9aaf009353ad0457, 0xb6b42d297e804ba7, 0x07da0eaa76a1597b, 0x2a12162db7dcfde5, \
        0xfafedb89fdbe896c, 0x76e4fca90670803e, 0x156e85ff87fd073e, 0x2833676186182aea, 0xbd4dafe7b36e6d8f, \
        0x3967955bbf3148d7, 0x8416df30432dc735, 0x6125ce70c9b8cb30, 0xfd6cbfa200a4e46c, 0x05a0dd5a476f21d2, \
        0x1262845cb9496170, 0xe0566b0152993755, 0x50b7d51ec4f1335f, 0x6e13e4305da92e85, 0xc3b21d3632a1a4b7, \
        0x08d4b1ea21f716e4, 0x698f77ff2780030c, 0x2d408da0cd4f99a5, 0x20d3a2b30a5d2f42, 0xf9b4cbda11d0be7d, \
        0xc1db9bbd17ab81a2, 0xca5c6a0817552e55, 0x0027f0147f8607e1, 0x640b148d4196debe, 0x872afddab6256b34, \
        0x897bfef3059ebfb9, 0x4f6a68a82a4a5ac4, 0x4fbcf82d985ad795, 0xc7f48d4d0da63a20, 0x5f57a4b13f149538, \
        0x800120cc86dd71b6, 0xdec9f560bf11654d, 0x6b0701acb08cd0c0, 0xb24855510efb1ec3, 0x72953b06a33540c0, \
        0x7bdc06cc45e0fa29, 0x4ec8cad641f3e8de, 0x647cd8649b31bed9, 0xc397a4d45877c5e3, 0x6913daf03c3aba46, \
        0x18465f7555f5bdd2, 0xc6926e5d2eaced44, 0x0e423e1c87c461e9, 0xfd29f3d6e7ca7c22, 0x35916fc5e0088dd7, \
        0xffe26a6ec6fdb0c1, 0x0893745d7cb2ad6b, 0x9d6ecd7b723e6a11, 0xc6a9cff7df7329ba, 0xc9b55100b70db2e2, \
        0x24ba74607de58ad8, 0x742c150d0c188194, 0x667e162901767a9f, 0xbefdfdef4556367e, 0xd913d9ecb9ba8bfc, \
        0x97c427a831c36ef1, 0x36c59456a8d8b5a8, 0xb40ecccf2d891234, 0x576f89562ce3ce99, 0xb920d6aa5e6b9c2a, \
        0x3ecc5f114a0bfdfb, 0xf4e16d3b8e2c86e2, 0x84d4e9a9b4fcd1ee, 0xefc9352e61392f44, 0x2138c8d91b0afc81, \
        0x6a4afbd81c2f84b4, 0x538c994ecc2254dc, 0x552ad6c6c096190b, 0xb8701a649569605a, 0x26ee523f0f117f11, \
        0xb5f4f5cbfc2dbc34, 0xeebc34cc5de8605e, 0xdd9b8e67ef3392b8, 0x17c99b5861bc57e1, 0xc68351103ed84871, \
        0xdddd1c2da118af46, 0x2c21d7f359987ad9, 0xc0549efa864ffc06, 0x56ae79e536228922, 0xad38dc9367aae855, \
        0x3826829be7caa40d, 0x51b133990ed7a948, 0x0569f0b265a7887f, 0x974c8836d1f9b392, 0x214a827b21cf98dc, \
        0x9f405547dc3a74e1, 0x42eb67df9dfe5fd4, 0x5ea4677b7aacbaa2, 0xf65523882b55ba41, 0x086e59862a218347, \
        0x39e6e389d49ee540, 0xfb49e956ffca0f1c, 0x8a59c52bfa94c5c1, 0xd3cfc50fae5adb86, 0xc5476243853b8621, \
        0x94792c8761107b4c, 0x2a1a2c8012bf4390, 0x2688893c78e4c4a8, 0x7bdbe5c23ac4eaf4, 0x268a67f7bf920d2b, \
        0xa365b1933d0b7cbd, 0xdc51a463dd27dde1, 0x6919949a9529a828, 0xce68b4ed09209f44, 0xca984e638270237c, \
        0x7e32b90f8ef5a7e7, 0x561408f1212a9db5, 0x4d7e6f5119a5abf9, 0xb5d6df8261dd9602, 0x36169f3ac4a1a283, \
        0x6ded727a8d39a9b8, 0x825c326b5b2746ed, 0x34007700d255f4fc, 0x4d59018071e0e13f, 0x89b295f364a8f1ae, \
        0xa74b38fc4ceab2bb, 0x47270babc3a734ba, 0x6052dd34f8563aeb, 0x7e8a31bb365895b7, 0x47f7a994c3aad392, \
        0x251e7f3ed8974ebb, 0xa94fd8ae01e661b4, 0x393d8ea523aa3306, 0x8e1633b53bb1881d, 0x3a9d4013d0cc1be5, \
        0xf862e73bf28f39b5, 0xbf0bc23522747ea2, 0x47c0d52d1f19add3, 0x9094df9311d0b42b, 0x25496db2e264b25e, \
        0xf1353bc6a41a4ad0, 0xaac92e64e8865730, 0x91982cfb311b1a08, 0x728bbdcee160e142, 0xeb641dd0bba3e559, \
        0xd4597b8c2a4483f3, 0x32baf848672c8d1b, 0x2fa9b050f3ddf9f5, 0x73db61b4fe233e6c, 0x41a6eea318775a26, \
        0xbc5e5ccea70894dc, 0x57e20196f1e839be, 0x48515d2d2f4e9555, 0xd96ec2e7d7556304, 0xe0c02e0efc40a0bb, \
        0xf9b37125a7222dfb, 0xf619d8838c1c6619, 0xe6b20d55bb513779, 0xe809af91490d73de, 0x0b0da5ce7f58ac19, \
        0x347246677a1a139e, 0x26bc4555e7585cb5, 0x711d14486991480d, 0x6056adabd62f6496, 0xee0c212ff35d6d88, \
        0xa6768495651eab9e, 0x0a4ddefe57101083, 0x6a39f8ea319e381d, 0xeac8b1cac96b37f2, 0x1ed505e99847439f, \
        0xc56c0331b73b8bf8, 0x86e56a8dc3436230, 0xe793cfd56a8f2d73, 0x30051af021a09fcb, 0x7415a1d56b236ff7, \
        0x252f4bc7b8a5917f, 0xac595c55de212c38, 0xb132965cff503662, 0x62fa7b16f4d9a62a, 0xcfe7f07403d4d604, \
        0x6fd91631b1bfcbb4, 0x505bd7c80ce1946b, 0xd6434fd91cdf4543, 0x5f3453e2b5aac9ae, 0xc8131485f9d2bfba, \
        0xdb9e76f5b9af15cf, 0xca318214b56de9fe, 0x4d50fc35f5aed5a2, 0xd0c1c96057192eb6, 0xe91d9207d144aea3, \
        0xc634356626d5b431, 0x61e237f1a2209eff, 0x958e2349379835f4, 0xa64bdc02c2be13be, 0x80a00b72a3115c5f, \
        0x1e1bd10db4d3869e, 0x8596976b2ac91f8a, 0x26c23070f0041412, 0xfc9fa5f72a389c68, 0x78e2aa7650cfe155, \
        0x9274934e380a92f7, 0x5533f0a63db43999, 0x71e2b755a98a7c00, 0x8f19ac54d22ea0b4, 0xf5f3e060c849ffd2, \
        0x69ae52ce7a5fdde9, 0xce06fb0ae8a50cce, 0xea9d3e3766ddb834, 0xf50da090846f884a, 0xe3d5099a032eae2d, \
        0xfcb40afb9b33e281, 0xdd1b16bad8c0afd9, 0x6b97b52dc99c277f, 0x5951d521ccd6b649, 0x6b584562b3baf2a1, \
        0xa5c47ca2cfa9b93d, 0x7b7b89483d3896b0, 0x3cc79cb1d0825d88, 0xedb7d383390c6e66, 0xe912dc1120340de7, \
        0x82a0fee6667881dc, 0x0ae80abfcd28c1b7, 0xacde18c4f8237666, 0xb9959db42c07faab, 0xd6038a557056aeeb, \
        0xf5b0bd95e94be00b, 0x9eb3a61e23f24ad6, 0x2c9ac4f1ad75c412, 0xf93b6e0b4c2ed46c, 0x0ed2e55e16558786, \
        0x80fbf676b41e698e, 0xc3ae285d4977c92a, 0x16374e193906f911, 0xc91aaa27467f0da5, 0x933f69d6a2578ec2, \
        0x9f9faa8b4add9bcf, 0xbb5c1d0be88dd533, 0xfede36f7ef60b308, 0xb1cc01829ebb5915, 0x17b1cc96b7eef0cd, \
        0xe267ca73d1a01943, 0xb8a3749628ea6a37, 0x26262e928185ea61, 0x5fdeeb61d7e2cfa7, 0xaeb7948d28b48c7b, \
        0x1c4c02f15f9d850b, 0x8a2db016cdd5638e, 0x33f4b3b45c292f51, 0x2b04b90d6fd83995, 0xdeadc51d8262ac03, \
        0x09a2a916025aaf0a, 0xd3e4275f590b067e, 0x774b63e8ab012afe, 0xfc81441b67bfb19f, 0x6d4d79557ffa4d3b, \
        0x0b29c0264dd64734, 0xa1ad8633e708725b, 0xdf8a0fbefc685251, 0xe13b665d171871a8, 0x41a28f4e2e14db2f, \
        0xa42505c02c474738, 0x60373048512ddf2c, 0xab5aa559238ba27b, 0xc2460006db6951b1, 0xe0f1341979ab9bc2, \
        0x00cbe2ca690fa693, 0x4f31f325f2fef910, 0xb32d6fcc0215d378, 0x6cffaee95d2616fe, 0x23843f2c828acdf4, \
        0xd2499ee3ceb09f06, 0xfb3942e0d6c4e24c, 0x163a6888e07fd00c, 0xb22dd531bc9b63c5, 0x3c94eb2d8ffa1e1a, \
        0x7fba45e57b7c2624, 0xe78a92ac2996341d, 0x1352f7d5a42191d1, 0x231a2c3909576f11, 0x161fffc69032a3fe, \
        0xd8e43e97df96da4d, 0xf9a472a237db66be, 0xab208b01bdba8f4a, 0xa0b4c1e8e4038614, 0x695a01d9d1914e00, \
        0xe8de742238f4d580, 0x42160ff0da4af8a0, 0xf7527e5ecb981d04, 0xbedfa47a1f4045dc, 0x68477f528c7ef7f0, \
        0x58b5b4a4bbae0a35, 0x51267e265db7c59b, 0xbc2a68e9d37e1ad6, 0x1d19fb56b25c68ed, 0xa71aefc9be937af4, \
        0x599520f5daeb0755, 0x08c71f46bde8fac7, 0x829495c93aaafbed, 0xbbf1be263e4f0dde, 0xfdafb99eeeb0762b, \
        0xac49bdcf73b8d068, 0x92510aed848c2176, 0x7f3a59d42cde0fea, 0x912a6c2fb60a4920, 0x9fe95da2b596bb00, \
        0x566245199c8b2fea, 0xf0c42cfc3e6c8afd, 0xf40ff29c022d8021, 0x4a8cd63ead13ba94, 0x9befec3707a4d18a, \
        0x0a4325445aba761f, 0x06cca16d4d1536ab, 0x5e0ce333d4c2913f, 0x281bf7464239e78b, 0x12aff80175f844f9, \
        0x832ce5b78d6da4ea, 0x4f0aed6c1bd83f1d, 0x2efc76318bd928fd, 0xdc3bf172e2bcb977, 0x44afe05b819cd975, \
        0x1f7254b9e4e059ab, 0x67652e1b7dfbacd9, 0x04e72e0b2a99948b, 0x16b9a380eaf9d1f3, 0x5399cb58de762c86, \
        0xa36b0214b7d9f208, 0x34e2aa7c39917735, 0xebaf80537add36c8, 0xa562cd07d485e85e, 0x0a57d5ad78298160, \
        0x2ac3e45b1305f3a3, 0xef26db0d0910214a, 0x27790cd1e3c2182d, 0xf51c3c2001c11d39, 0x2986c73c43c14264, \
        0x74927ce6ce03dba3, 0xb72ade5ad28afb5d, 0xf8886f4060ad413e, 0x90e0083bb550001e, 0x7da01b409a139aad, \
        0x4a378687c6c56a3d, 0xf68cc38b4ab7ae39, 0xc9dad17e6178851b, 0xa345d3ab0da7ed4f, 0x9f4038caabc87d9a, \
        0x6a007a584c63e151, 0x4d4dde063f368501, 0xef295fa25965ca67, 0x31bc830f846b554e, 0x0bd445020f5605da, \
        0x490db5e33fa7404a, 0x2717c4e17059ca13, 0xfb742c2b7a1c2dd7, 0xe754a9545d040274, 0x654a19dadfc79923, \
        0xe89dc953edd05cea, 0xc48360a7d19a1800, 0xa909cd3765585975, 0x5e196dcac7e07141, 0xf2a86b8df49dde9d, \
        0xd9a4b034bc48a10c, 0x19a4b52a2a47c599, 0x32de0df67f67d7ae, 0x3393c90f913f7754, 0x971ec1c6297725aa, \
        0x0d0aa6fa0a70e816, 0xf4f7caf4cf7711ef, 0x5e960a929895960f, 0xba2e9b3c5c6382a0, 0xcb52513bb0fc856f, \
        0xf7afa8dd087b7451, 0xd9279c56c9173c0a, 0x80996aafdbdbb81f, 0xeba9f6c2e1491602, 0xa9769411ce869a53, \
        0x955c863526c3446b, 0x9fbe0ab79cfa9cc8, 0xb4f49457bc07ceaf, 0x01dfb6b9b36dfda0, 0x437fafbff66dfac8, \
        0x82d11f4ed74fd9ee, 0xc335b12cc9c58468
inline constexpr std::uint64_t more_bits_of_two_over_pi[] = {MP_MORE_BITS_OF_TWO_OVER_PI};

/// two_over_pi for an index of up to 517: 64 bits of 2/pi from the one of weight 2^(-64 index) on.
MP_HOST_DEVICE constexpr std::uint64_t long_two_over_pi(int index) {
    if (index < 41) return two_over_pi(index);
#if MP_DEVICE_CODE
    constexpr std::uint64_t words[] = {MP_MORE_BITS_OF_TWO_OVER_PI};
    return words[index - 41];
#else
    return more_bits_of_two_over_pi[index - 41];
#endif
}
#undef MP_MORE_BITS_OF_TWO_OVER_PI

}}  // namespace mp::detail
