/* SPDX-License-Identifier: Apache-2.0 */
/* Known answers for the self-test, in hexadecimal, each row ordered by key size: 128, 192, 256 bits. */
#ifndef CM_SELFTEST_DATA_H
#define CM_SELFTEST_DATA_H

/* FIPS 197, appendix C. The key is the first bytes of 00 01 02 ... */
static const char fips197_key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
static const char fips197_text[] = "00112233445566778899aabbccddeeff";
static const char *const fips197_answer[3] = {
    "69c4e0d86a7b0430d8cdb78070b4c55a",
    "dda97ca4864cdfe06eaf70a0ec0d7191",
    "8ea2b7ca516745bfeafc49904b496089",
};

/* SP 800-38A, appendix F: F.1 (ECB), F.2 (CBC), F.5 (CTR). */
static const char sp800_38a_text[] = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
                                     "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
static const char sp800_38a_iv[] = "000102030405060708090a0b0c0d0e0f";
static const char sp800_38a_counter[] = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
static const char *const sp800_38a_key[3] = {
    "2b7e151628aed2a6abf7158809cf4f3c",
    "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
    "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
};
static const char *const sp800_38a_answer[3][3] = {
    /* ECB, CBC, CTR */
    {
        ("3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf"
         "43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4"),
        ("bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eef"
         "ef7afd2270e2e60adce0ba2face6444e9a4b41ba738d6c72fb16691603c18e0e"),
        ("f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870"
         "b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7"),
    },
    {
        ("7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
         "73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7"),
        ("4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a"
         "571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd"),
        ("f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d"
         "39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b"),
    },
    {
        ("874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
         "5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee"),
        ("1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e94"
         "1e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050"),
        ("601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
         "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"),
    },
};

/* The GCM specification of McGrew and Viega, appendix B: cases 4 to 6, 10 to 12, 16 to 18. The key is the
 * first bytes of this one. The answers are ciphertext and tag, for IVs of 12, 8 and 60 bytes. */
static const char gcm_key[] = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
static const char gcm_text[] = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                               "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
static const char gcm_aad[] = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
static const char *const gcm_iv[3] = {
    "cafebabefacedbaddecaf888",
    "cafebabefacedbad",
    ("9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728"
     "c3c0c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b"),
};
static const char *const gcm_answer[3][3] = {
    {
        ("42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
         "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e0915bc94fbc"
         "3221a5db94fae95ae7121a47"),
        ("61353b4c2806934a777ff51fa22a4755699b2a714fcdc6f83766e5f97b6c7423"
         "73806900e49f24b22b097544d4896b424989b5e1ebac0f07c23f45983612d2e7"
         "9e3b0785561be14aaca2fccb"),
        ("8ce24998625615b603a033aca13fb894be9112a5c3a211a8ba262a3cca7e2ca7"
         "01e4a9a4fba43c90ccdcb281d48c7c6fd62875d2aca417034c34aee5619cc5ae"
         "fffe0bfa462af43c1699d050"),
    },
    {
        ("3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c"
         "7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda27102519498e"
         "80f1478f37ba55bd6d27618c"),
        ("0f10f599ae14a154ed24b36e25324db8c566632ef2bbb34f8347280fc4507057"
         "fddc29df9a471f75c66541d4d4dad1c9e93a19a58e8b473fa0f062f765dcc57f"
         "cf623a24094fcca40d3533f8"),
        ("d27e88681ce3243c4830165a8fdcf9ff1de9a1d8e6b447ef6ef7b79828666e45"
         "81e79012af34ddd9e2f037589b292db3e67c036745fa22e7e9b7373bdcf566ff"
         "291c25bbb8568fc3d376a6d9"),
    },
    {
        ("522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
         "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f66276fc6ece"
         "0f4e1768cddf8853bb2d551b"),
        ("c3762df1ca787d32ae47c13bf19844cbaf1ae14d0b976afac52ff7d79bba9de0"
         "feb582d33934a4f0954cc2363bc73f7862ac430e64abe499f47c9b1f3a337dbf"
         "46a792c45e454913fe2ea8f2"),
        ("5a8def2f0c9e53f1f75d7853659e2a20eeb2b22aafde6419a058ab4f6f746bf4"
         "0fc0c3b780f244452da3ebf1c5d82cdea2418997200ef82e44ae7e3fa44a8266"
         "ee1c8eb0c8b5d4cf5ae9f19a"),
    },
};

/* XTS, whole blocks and a ragged end; data units of XTS-AES-128, then of XTS-AES-256. NIST's validation suite
 * XTSGenAES128, encryption 101 and 301; XTSGenAES256, encryption 101; Wycheproof aes_xts_test, case 70. */
static const struct {
    const char *key, *tweak, *text, *answer;
} xts_answer[2][2] = {
    {
        {"b7b93f516aef295eff3a29d837cf1f135347e8a21dae616ff5062b2e8d78ce5e",
         "873edea653b643bd8bcf51403197ed14",
         "236f8a5b58dd55f6194ed70c4ac1a17f1fe60ec9a6c454d087ccb77d6b638c47",
         "22e6a3c6379dcf7599b052b5a749c7f78ad8a11b9f1aa9430cf3aef445682e19"},
        {"394c97881abd989d29c703e48a72b397a7acf51b59649eeea9b33274d8541df4",
         "4b15c684a152d485fe9937d39b168c29", "2f3b9dcfbae729583b1d1ffdd16bb6fe2757329435662a78f0",
         "f3473802e38a3ffef4d4fb8e6aa266ebde553a64528a06463e"},
    },
    {
        {("266c336b3b01489f3267f52835fd92f674374b88b4e1ebd2d36a5f457581d9d0"
          "42c3eef7b0b7e5137b086496b4d9e6ac658d7196a23f23f036172fdb8faee527"),
         "06b209a7a22f486ecbfadb0f3137ba42",
         ("ca7d65ef8d3dfad345b61ccddca1ad81de830b9e86c7b426d76cb7db766852d9"
          "81c6b21409399d78f42cc0b33a7bbb06"),
         ("c73256870cc2f4dd57acc74b5456dbd776912a128bc1f77d72cdebbf270044b7"
          "a43ceed29025e1e8be211fa3c3ed002d")},
        {("e79419fc6d058801f6e5bf95e6ecf10f8c38bc885af408eaababd52d1ff5a1d7"
          "8d44c747de62125c2e9f3b4c3976a5d4bd1f80d5f148bfa4df813431e3cd57b6"),
         "f2e0eba7e7bbf67f0000000000000000",
         "06e3c200dbf0609480cec6f954062f68fa55c620115e93445e0925cdd708668ebc",
         "e3c8d3bc83eab55b81e308c47bdbf6e79a6efd3a64cdb3b670a941497b9e2e4b53"},
    },
};

#endif
