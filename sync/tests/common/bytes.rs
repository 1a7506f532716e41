//! Guarantees of every communicator for transfers of bytes.

use downbeat_sync::{Comm, CommError};

/// Zero, less than a word, whole words and messages, one more and one less; and more than a backend
/// sends at once.
const LENGTHS: [usize; 12] = [0, 1, 7, 8, 9, 47, 48, 49, 96, 1_000, 65_537, 1_000_003];

/// Exchanges bytes in a ring. All ranks call it.
pub(crate) async fn bytes_arrive<M: Comm>(comm: &M) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let content = |from: u32, length: usize| -> Vec<u8> {
        (0..length)
            .map(|i| (i * 7 + i / 256) as u8 ^ from as u8)
            .collect()
    };
    for length in LENGTHS.into_iter().filter(|_| size > 1) {
        let (mine, mut theirs) = (content(rank, length), vec![0; length]);
        // Round a ring that rank 0 starts: a rank may have to wait for its receiver.
        if rank == 0 {
            comm.send_bytes(next, &mine).await?;
        }
        comm.recv_bytes(previous, &mut theirs).await?;
        if rank > 0 {
            comm.send_bytes(next, &mine).await?;
        }
        assert!(
            theirs == content(previous, length),
            "{length} bytes from {previous} to {rank}"
        );
        // Other messages are not affected.
        comm.send(next, length as u64).await?;
        assert_eq!(comm.recv(previous).await, Ok(length as u64));
    }
    for length in [0, 100] {
        let no_such_rank = Err(CommError::NoSuchRank { rank: size, size });
        assert_eq!(
            comm.send_bytes(size, &content(0, length)).await,
            no_such_rank
        );
        assert_eq!(
            comm.recv_bytes(size, &mut content(0, length)).await,
            no_such_rank
        );
        assert_eq!(
            comm.send_bytes(rank, &content(0, length)).await,
            Err(CommError::WaitsForItself)
        );
        assert_eq!(
            comm.recv_bytes(rank, &mut content(0, length)).await,
            Err(CommError::WaitsForItself)
        );
    }
    Ok(())
}
