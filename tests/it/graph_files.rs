//! Files with an HNSW graph, in builds with and without the feature `hnsw`.

use std::io::Read;

use fastdx::embedding::format::native;
use fastdx::search::{HnswParameters, Search};
#[cfg(not(feature = "hnsw"))]
use fastdx::{Control, Error};
use fastdx::{Embedding, Mechanism, MultivariateLaplace, Randomness};

/// A file from the time before hnsw_rs built the graphs: 24 words in the plane, m = 3, seed 1.
/// Packed by zlib.
const BEFORE: &str = "\
     78daed95cd6b134114c0275f4db3f96cb249b47e2008a2a2d8dd7c34a1a0096abd54a510a422a834a2085e7a1a\
     3c2839aa273d091e241e3c78e93f20d8edcd83b7a278927af72a7891ba9bfd8d4e97968478f0e223c36fdebc79\
     ef4ddecedb7d3c7f6e296d4c1b2121c4a43b9c8418c8c3e8caf3b7abef2e877c55b498ec417f79b7fabab911ff\
     1446ef617f8fbe7173a5f361e9d2f188b2b3f134fa2391feb6ff5eaf1b45775420e23839f34beefc9d684cd909\
     e4a0afdd7f31f7353af731a9e213e810fa6d73efbee51fed2729e5afecc479f3ec55b7280e7e4e631ffc79579e\
     92bfb3b0f8fde7c2ea033144543dc2e2ef44f9ab7a4c6c3f9630a0fa3f1998837968c2329c8607c4f6fa1c8647\
     e03178029e8236acc1069c13db9fe7b82267a4256d599155599375392b1bb2292d77d192962dad8ab4aad2aa49\
     ab2ead596935a4d594f68cb45d1f5bda1521b65cf16a5514fe5c17af9653acc702f63035dc1a51bcfaa6a96b62\
     073fef394402ebde332bb116d26cde3355f756df1fd7f442c066a267b9036add9db6bdf6747f2d7fde3b2344df\
     9d3beee87bedb2eeae39fed8644f6e9dae70f54de70f7b6bfedcdbdbc2a7479c5cdbb7ff96969f6b700bdbbedf\
     c0b7c579349f3eb91d7506f2e5d623817b1b0adcf7512512e81b23d027aa3f8ab034627f1c8527037d518175d8\
     0cf405851167e13cbc002fc2c55dd809f0ca98bc0aafedc2eb23f2065cfe47ec0ee1adffdc91c3a444afa4f906\
     4df14d89d38b5eff64d993a27f26787f95f93e79efc302f338bd18c63f46bc18dfb6044cb23f45ee08b9cad84d\
     f61adabaa9f5b9414f278991655f9edc71ce14629418196c5938a99d51c5ca90c7d06a20a84d1e3dc93953da19\
     0bccd5394dcddfc4c7d0ce94d47265c678e779f20b789d2b5e";

fn before() -> Vec<u8> {
    let digits: String = BEFORE.split_whitespace().collect();
    let packed: Vec<u8> = (0..digits.len() / 2)
        .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let mut bytes = Vec::new();
    let mut unpacked = flate2::read::ZlibDecoder::new(&packed[..]);
    unpacked.read_to_end(&mut bytes).unwrap();
    bytes
}

fn laplace(e: &Embedding) -> MultivariateLaplace {
    MultivariateLaplace::new(e.clone().into(), 0.5, Randomness::new(Some(3))).unwrap()
}

#[test]
fn a_graph_of_before_is_opened_and_written_again_unchanged() {
    let bytes = before();
    let e = native::from_bytes(&bytes).unwrap();
    let hnsw = e.hnsw().unwrap();
    let expected = HnswParameters {
        m: 3,
        ef_construction: 20,
        seed: 1,
    };
    assert_eq!(hnsw.parameters(), expected);
    assert!(hnsw.reachable().into_iter().all(|reached| reached));
    assert_eq!(native::to_bytes(&e), bytes);
}

#[cfg(feature = "hnsw")]
#[test]
fn a_graph_of_before_is_searched() {
    let e = native::from_bytes(&before()).unwrap();
    let exact = laplace(&e);
    let approximate = exact.clone().with_search(Search::Hnsw { ef: 24 }).unwrap();
    for word in ["w0", "w13", "w23"] {
        let drawn = exact.sample(word, 3000).unwrap();
        assert_eq!(drawn, approximate.sample(word, 3000).unwrap());
    }
}

#[cfg(not(feature = "hnsw"))]
#[test]
fn without_the_feature_the_graph_search_is_refused_by_its_name() {
    let e = native::from_bytes(&before()).unwrap();
    let refused = |error: Error| {
        let message = error.to_string();
        let named = message.contains("feature `hnsw`");
        assert!(
            matches!(error, Error::Parameter { .. }) && named,
            "{message}"
        );
    };
    refused(
        e.build_hnsw(HnswParameters::default(), &Control::new())
            .unwrap_err(),
    );
    let search = Search::Hnsw { ef: 24 };
    refused(laplace(&e).with_search(search).unwrap_err());
    let plain = e.first(9).unwrap();
    refused(laplace(&plain).with_search(search).unwrap_err());
    let hnsw = e.hnsw().unwrap();
    let control = Control::new();
    let measured = fastdx::mechanism::quality::measure(&laplace(&e), hnsw, 9, &[0], 9, &control);
    refused(measured.unwrap_err());
    let build = fastdx::cover::Build {
        approximate: true,
        ..Default::default()
    };
    refused(fastdx::Cover::nearest(&e, 3, &build, &control).unwrap_err());
    assert_eq!(laplace(&e).sample("w0", 3).unwrap().len(), 3);
}
